"""SQL Server, 2019 or newer."""
