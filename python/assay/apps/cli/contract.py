"""`assay contract`: what was bought or promised, and whether it is kept. Each command is a file of its own."""

from __future__ import annotations

from assay.apps.cli import contract_acceptance, contract_judge, contract_seal
from assay.apps.cli.commands import App

EXAMPLES = """
Examples:

`assay contract template > contract.toml`

`assay contract test contract.toml /data/new --size 100G`

`assay contract judge contract.toml /var/lib/assay/recording -o vendor.html`

`assay contract seal /var/lib/assay/recording --sign seal.key`
"""

app = App(
    name="contract",
    help="Contracts of storage: test them on a target, judge them over months of a recording; seal it.",
    epilog=EXAMPLES,
    no_args_is_help=True,
)


def template() -> None:
    """Print a contract to fill in."""
    from assay.insight.contracts.contract import template as contract_template

    print(contract_template(), end="")


app.command(name="template")(template)
app.command(name="test", epilog=contract_acceptance.EXAMPLES)(contract_acceptance.acceptance)
app.command(name="judge", epilog=contract_judge.EXAMPLES)(contract_judge.judge)
app.command(name="seal", epilog=contract_seal.SEAL_EXAMPLES)(contract_seal.seal)
app.command(name="check-seal", epilog=contract_seal.CHECK_EXAMPLES)(contract_seal.check_seal)
