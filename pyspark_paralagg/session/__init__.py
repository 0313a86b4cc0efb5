"""Set up a Spark session for the extension: Java, Spark, the jar, confs, the bridge, and the doctor."""
