"""The command line: thin. Each command is one file that parses, calls the library and prints.

Exit codes: 0 done, 1 failed, 2 bad usage, 130 interrupted.
"""

import sys
from typing import Annotated

import typer
from rich.console import Console

import banditgrad

app = typer.Typer(
    name="banditgrad",
    help="Train models with bandit sampling: draw the rows that matter, stay unbiased.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"banditgrad {banditgrad.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """What all commands share."""


def main() -> None:
    """The entry point: what users can mend is told in one line, without a traceback."""
    try:
        app()
    except (ValueError, TypeError, OSError, ImportError) as error:
        Console(stderr=True).print(f"[bold red]Error:[/] {error}", highlight=False, markup=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


from banditgrad.cli import paper as _paper  # noqa: E402, F401  commands register themselves
