"""Parse Datalog text into a syntax tree."""
