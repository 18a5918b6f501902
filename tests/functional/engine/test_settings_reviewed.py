"""Every setting of Spark was looked at, and variables are read as Spark reads them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from spark_shop import SparkShop

from spark_dynamic import row_settings
from spark_dynamic.harmless_settings import is_harmless
from spark_dynamic.row_settings import DEFAULTS, UNDEFINED
from spark_dynamic.sql.substitute import left_to_spark, substituted

# Their defaults are those of the machine.
OF_THE_MACHINE = {"spark.sql.session.timeZone"}


def settings_of_spark(shop: SparkShop) -> dict[str, str]:
    """Return the settings that Spark and Delta know, also those not shown by SET -v."""
    session: Any = shop.session
    jvm = session._jvm
    shop.run("SELECT 1")
    entries = getattr(jvm.org.apache.spark.sql.internal, "SQLConf$")
    # It is enough to name Delta's for them to be there.
    delta = getattr(jvm.org.apache.spark.sql.delta.sources, "DeltaSQLConf$")
    assert getattr(delta, "MODULE$") is not None
    found, each = {}, getattr(entries, "MODULE$").getConfigEntries().iterator()
    while each.hasNext():
        entry = each.next()
        key = entry.key()
        found[key] = UNDEFINED if key in OF_THE_MACHINE else entry.defaultValueString()
    return found


def test_every_setting_is_harmless_or_has_a_known_default(shop: SparkShop) -> None:
    known = settings_of_spark(shop)
    assert len(known) > 1000
    wanted = {key: default for key, default in sorted(known.items()) if not is_harmless(key)}
    if os.environ.get("REWRITE"):
        place = Path(row_settings.__file__)
        head = place.read_text().partition("DEFAULTS: Final = {\n")
        lines = (f"    {json.dumps(key)}: {json.dumps(v)},\n" for key, v in wanted.items())
        place.write_text(f"{head[0]}{head[1]}{''.join(lines)}}}\n")
        return
    # A new name is to be reviewed, then put into harmless_settings or, by REWRITE=1, here.
    assert wanted == DEFAULTS


VALUES = {"region": "eu", "outer.name": "[${inner-name}]", "inner-name": "in", "Case": "c"}


@pytest.mark.parametrize(
    "text",
    [
        "${region}", "${spark:region} ${sparkconf:region} ${hiveconf:region} ${hivevar:region}",
        "${unset} ${hiveconf:unset}", "${outer.name}", "${case}${Case}", "$${region}",
        "${other:region}", "${SPARK:region}", "${a:b:region}", "${ region }", "${}", "${:region}",
        "${${region}}", "${region", "${region}}", "/* ${region} */", "${spark.nobody.knows}",
        "${spark.sql.session.timeZone}", "${env:HOME}", "${system:user.name}",
    ],
)  # fmt: skip
def test_variables_are_read_as_spark_reads_them(shop: SparkShop, text: str) -> None:
    for key, value in VALUES.items():
        shop.session.conf.set(key, value)
    [[found]] = shop.session.sql(f"SELECT '{text}'").collect()
    ours, _ = substituted(text, {**VALUES, "spark.sql.session.timeZone": "UTC"})
    if left_to_spark(ours, {}):
        assert ours == text != found
    else:
        assert ours == found


def test_a_text_stays_as_it_is_where_variables_are_switched_off(shop: SparkShop) -> None:
    off = {"spark.sql.variable.substitute": "false", "region": "eu"}
    for key, value in off.items():
        shop.session.conf.set(key, value)
    [[found]] = shop.session.sql("SELECT '${region}'").collect()
    assert found == "${region}" == substituted("${region}", off)[0]
    assert left_to_spark("${region}", off) == []


def test_a_view_made_under_other_settings_is_not_written_out(shop: SparkShop) -> None:
    """Spark reads its text under the settings of its creation, also those it was made without."""
    shop.table("t", "a int, s string", "(1, NULL)")
    key = "spark.sql.jsonGenerator.ignoreNullFields"
    shop.run("CREATE VIEW v AS SELECT a, to_json(named_struct('s', s)) AS j FROM t")
    shop.model("m", "select * from v", refresh_mode="auto")
    shop.check("m", "FULL")
    shop.check("m", "NO_DATA")
    shop.session.conf.set(key, "false")
    outcome = shop.refresh("m", settings_too={key: "false"})
    assert outcome.plan.verdict.code == "TEXT_NOT_READABLE"
    assert f"was created with {key}=true" in outcome.plan.verdict.detail
    assert shop.difference("m") == []
