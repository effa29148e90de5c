"""The command line: thin. Each command is one file that parses, calls the library and prints.

Exit codes: 0 done, 1 failed, 2 bad usage, 130 interrupted.
"""

import os
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

import banditgrad
from banditgrad.cli.compare import compare
from banditgrad.cli.demo import demo
from banditgrad.cli.fit import fit
from banditgrad.cli.inspect import inspect
from banditgrad.cli.predict import predict
from banditgrad.cli.screen import never_fail_to_encode
from banditgrad.cli.warmup import warmup

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
def callback(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """What all commands share."""


app.command()(inspect)
app.command()(fit)
app.command()(predict)
app.command()(compare)
app.command()(demo)
app.command()(warmup)


def main() -> None:
    """The entry point: what users can mend is told in one line, without a traceback."""
    never_fail_to_encode()
    try:
        app()
    except BrokenPipeError:  # the reader, `head` for one, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        Console(stderr=True, soft_wrap=True).print(f"[bold red]Error:[/] {escape(str(error))}", highlight=False)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


from banditgrad.cli import paper as _paper  # noqa: E402, F401  commands register themselves
