"""The work of the Spark applications, as functions over DataFrames. ``spark_apps/`` calls them."""
