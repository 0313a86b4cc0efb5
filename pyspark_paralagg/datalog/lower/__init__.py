"""Lower flat rules to a Program: types, expressions, relations and inputs."""
