"""`sluice pipeline`: one file per Spark job."""
