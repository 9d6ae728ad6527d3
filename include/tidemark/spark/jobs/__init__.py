"""What the Spark applications do, as functions over DataFrames."""
