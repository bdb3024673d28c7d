"""`sluice lint`: what the traffic of Kafka clients shows about their settings, and rules that judge it."""
