"""The command line of the demo."""

import sys
from contextlib import chdir
from pathlib import Path

import click

from dbt.adapters.spark_dynamic.demo.screen import Screen
from dbt.adapters.spark_dynamic.demo.tour import DemoFailed, Tour


@click.command()
@click.option(
    "--project-dir",
    type=click.Path(path_type=Path),
    default=Path("integration_tests"),
    show_default=True,
    help="The shop project, as it is in the repository.",
)
@click.option(
    "--fresh/--keep",
    default=True,
    show_default=True,
    help="Start with an empty warehouse, or with the one that the last demo left.",
)
def main(project_dir: Path, fresh: bool) -> None:
    """Build dynamic tables with dbt on a local Spark, change their sources and refresh them."""
    project = project_dir.resolve()
    if not (project / "dbt_project.yml").is_file():
        raise click.BadParameter(
            f"No dbt project in {project}. Run it in a clone of the repository, or name the "
            "directory of the shop project.",
            param_hint="--project-dir",
        )
    # The embedded warehouse lives in the current directory.
    with chdir(project):
        tour = Tour(project, Screen())
        try:
            if fresh:
                tour.clear()
            tour.run()
        except DemoFailed:
            sys.exit(1)
        except KeyboardInterrupt:
            sys.exit(130)


if __name__ == "__main__":
    main()
