"""Lower Datalog rules and aggregates to Spark DataFrames. Spark itself evaluates strata without recursion."""
