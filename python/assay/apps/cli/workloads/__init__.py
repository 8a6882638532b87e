"""The verbs of this kind: `assay profile` and `assay sqlio`."""
