"""When a fault rule fires: conditions on requests, schedules, rates and durations."""
