"""What both coordinators share: the log they write to, the partitions they own, and loading."""
