"""Pulsar: Key_Shared subscriptions, and routing to partitioned topics."""
