"""The way into a Spark session: Java, Spark, the jar, confs, the bridge, and the doctor."""
