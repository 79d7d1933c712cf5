"""Which pair next: draws from the policy in force, leases, releases."""
