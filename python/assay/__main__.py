"""`python -m assay`."""

from assay.apps.cli import main

main()
