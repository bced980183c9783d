-- The id of a session may be used again: what tells it from every other one is the id of its first entry, and what is
-- kept aside of a purged one is found by that. In sessions of before both are the same.
alter table turnlog.session add column first_key bytea;

-- Those of every tenant, this once.
alter table turnlog.session no force row level security;
update turnlog.session set first_key = key;
alter table turnlog.session force row level security;

alter table turnlog.session alter column first_key set not null, drop constraint session_tenant_key_key;
create unique index session_first on turnlog.session (tenant, first_key);
-- One session of a name, and one deleted one; of those that are kept aside, any number.
create unique index session_name on turnlog.session
    (tenant, place, key, (case when place = 'base' then first_key else ''::bytea end));
