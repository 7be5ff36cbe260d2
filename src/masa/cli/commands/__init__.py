"""The commands, a file per group. A body reads its options, makes one call and prints."""
