"""`orthorank experiment …`: re-run the evidence."""

from __future__ import annotations

import typer

from app.cli.experiments import acquisition, coverage, curves, equilibrium, real, scaling

experiments = typer.Typer(no_args_is_help=True, help="Re-run the experiments behind the statistics; seeds are fixed.")
commands = typer.Typer()
commands.add_typer(experiments, name="experiment")
for command in (
    *(acquisition.acquisition, coverage.coverage, curves.judges, curves.misspecification, real.real),
    equilibrium.equilibrium,
    scaling.scaling,
):
    experiments.command()(command)


@experiments.callback()
def group() -> None:
    """Keep `experiment` a group of commands."""
