"""What the embedded Spark is started with: our defaults, and what the user chose over them."""

from pathlib import Path

import pytest
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.spark_dynamic import embedded, session
from dbt.adapters.spark_dynamic.connections import RESULT_SETTINGS, SparkDynamicCredentials
from dbt.adapters.spark_dynamic.embedded import Home, launch_settings, uses_own_metastore
from dbt.adapters.spark_dynamic.errors import EmbeddedSparkError

JAVA_OPTIONS = "spark.driver.extraJavaOptions"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.at(str(tmp_path / "home"))


@pytest.fixture(autouse=True)
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stands for the fetching of jars; notes each time it is asked."""
    asked: list[str] = []

    def delta_jars() -> list[Path]:
        asked.append("jars")
        return [Path("/cache/delta.jar"), Path("/cache/storage.jar")]

    monkeypatch.setattr(embedded, "delta_jars", delta_jars)
    return asked


def test_a_profile_that_says_nothing_gets_delta_and_a_place_of_its_own(home: Home) -> None:
    settings = launch_settings(home, {})
    assert settings["spark.jars"] == "/cache/delta.jar,/cache/storage.jar"
    assert settings["spark.driver.extraClassPath"] == "/cache/delta.jar:/cache/storage.jar"
    assert settings["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension"
    assert settings["spark.sql.warehouse.dir"] == str(home.path / "warehouse")
    assert (
        f"databaseName={home.path}/metastore_db;"
        in (settings["spark.hadoop.javax.jdo.option.ConnectionURL"])
    )
    assert f"-Dderby.system.home={home.path}" in settings[JAVA_OPTIONS]
    assert settings["spark.driver.bindAddress"] == "127.0.0.1"


def test_what_the_user_chose_wins_over_every_default(home: Home) -> None:
    chosen = {key: "chosen" for key in launch_settings(home, {}) if key != JAVA_OPTIONS}
    settings = launch_settings(home, chosen)
    assert {key: settings[key] for key in chosen} == chosen


def test_java_options_of_the_user_come_after_ours(home: Home) -> None:
    ours = launch_settings(home, {})[JAVA_OPTIONS]
    assert launch_settings(home, {JAVA_OPTIONS: "-Xss8m"})[JAVA_OPTIONS] == f"{ours} -Xss8m"
    with_archive = launch_settings(home, {JAVA_OPTIONS: "-Xss8m"}, "-XX:SharedArchiveFile=a")
    assert with_archive[JAVA_OPTIONS] == f"{ours} -XX:SharedArchiveFile=a -Xss8m"


@pytest.mark.parametrize("key", ["spark.jars", "spark.jars.packages"])
def test_jars_of_the_user_replace_ours_and_nothing_is_fetched(
    home: Home, key: str, fetched: list[str]
) -> None:
    settings = launch_settings(home, {key: "chosen"})
    assert {k: v for k, v in settings.items() if k.startswith("spark.jars")} == {key: "chosen"}
    assert "spark.driver.extraClassPath" not in settings
    assert fetched == []


@pytest.mark.parametrize(
    "key",
    [
        "spark.hadoop.javax.jdo.option.ConnectionURL",
        "spark.hadoop.hive.metastore.uris",
        "spark.sql.catalogImplementation",
    ],
)
def test_a_metastore_of_the_user_is_not_locked(key: str) -> None:
    assert uses_own_metastore({"spark.driver.memory": "4g"})
    assert not uses_own_metastore({key: "chosen"})


def test_home_is_the_profiles_then_the_environments_then_the_projects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPARK_DYNAMIC_HOME", raising=False)
    assert Home.at(None).path == tmp_path / ".spark_dynamic"
    monkeypatch.setenv("SPARK_DYNAMIC_HOME", "from_environment")
    assert Home.at(None).path == tmp_path / "from_environment"
    assert Home.at("from_profile").path == tmp_path / "from_profile"


def test_preparing_a_home_hides_it_from_git_and_keeps_the_last_log(home: Home) -> None:
    home.prepare()
    home.log.write_text("first")
    home.prepare()
    assert (home.path / ".gitignore").read_text() == "*\n"
    assert home.log.with_suffix(".log.1").read_text() == "first"
    assert not home.log.exists()


def test_a_start_that_failed_does_not_lock_out_the_next_try(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*args: object) -> None:
        raise OSError("no memory")

    monkeypatch.setattr(session, "java_home", lambda cache: "/java")
    monkeypatch.setattr(session, "_connect", no_memory)
    for _ in range(2):
        with pytest.raises(EmbeddedSparkError) as raised:
            session._start_jvm(home, {})
        assert str(raised.value.msg).startswith("SPARK_NOT_STARTED: ")
        assert str(home.log) in str(raised.value.msg)


def test_a_profile_of_two_lines_is_an_embedded_session_with_fixed_result_settings() -> None:
    SparkDynamicCredentials.validate({"schema": "s"})
    credentials = SparkDynamicCredentials.from_dict({"schema": "s"})
    assert credentials.method == "session"
    assert credentials.server_side_parameters.items() >= RESULT_SETTINGS.items()
    # Whatever the cluster says, history with gaps is no history.
    assert credentials.server_side_parameters["spark.sql.files.ignoreMissingFiles"] == "false"


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.parser.escapedStringLiterals",
        "spark.sql.files.ignoreMissingFiles",
        "spark.sql.files.ignoreCorruptFiles",
    ],
)
def test_a_setting_under_which_rows_would_be_wrong_is_refused(key: str) -> None:
    for value in (False, "false"):
        SparkDynamicCredentials(schema="s", server_side_parameters={key: value})
    for value in (True, "TRUE"):
        with pytest.raises(DbtConfigError, match="SETTING_NOT_SUPPORTED"):
            SparkDynamicCredentials(schema="s", server_side_parameters={key: value})


def test_the_profile_decides_about_ansi_and_time_zone_as_yaml_writes_them() -> None:
    chosen = {
        "spark.sql.ansi.enabled": False,
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.shuffle.partitions": 3,
    }
    profile = {"schema": "s", "server_side_parameters": chosen}
    SparkDynamicCredentials.validate(profile)
    credentials = SparkDynamicCredentials.from_dict(profile)
    written = {key: credentials.server_side_parameters[key] for key in chosen}
    assert written == {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.shuffle.partitions": "3",
    }
