-- To which endpoints of providers observers have sent the requests of a day.
alter table observer_usage
    add column endpoints jsonb not null default '{}'; -- {endpoint: requests}, the 100 with the most
