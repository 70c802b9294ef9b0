"""A trace walked by periods: route, measure, rebuild, charge the migration."""
