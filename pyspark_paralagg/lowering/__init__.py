"""Programs on Spark: what was not born there, told in DataFrames. Strata without recursion are left to Spark itself."""
