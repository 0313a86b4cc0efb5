"""Run a Plan in Spark's own Python workers: inputs go there as one stream of Arrow batches, and rows come back."""
