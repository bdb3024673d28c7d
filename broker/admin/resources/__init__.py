"""The operations of the admin API, one file per resource."""
