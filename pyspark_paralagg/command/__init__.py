"""`paralagg run`: directives -> facts -> the session -> `ra.datalog` -> results. Nothing else imports this folder."""
