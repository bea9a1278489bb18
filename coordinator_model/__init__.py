"""The group coordinator of Apache Kafka as code that can be read, run and compared with a broker.

Pure Python: no Spark, no I/O, no clock, no chance. Time and everything random are arguments.
"""
