-- Whether a session is a conversation; how turns are counted and what a session ends with are other than before, too.
-- So everything that the catalog has read is thrown away, and made again by who asks next.
alter table turnlog.catalog_sessions add column is_conversation boolean not null default false;
create or replace view turnlog.own_sessions with (security_barrier) as select
    id, seq, name, native, is_ours, agent, path, key, workspace, title, preview, model, created, updated, messages,
    turns, tool_calls, branches, fork, parent, origin, copy_of, is_hidden, is_archived, is_deleted, is_copied,
    tags, models, unpriced, own, inherited, before, subagents, cost, ending, writer, damage, problem, size, resume,
    family, depth, totals, stamp, mark, is_conversation
    from turnlog.catalog_sessions where tenant = (select turnlog.tenant_num());
truncate turnlog.catalog_sessions, turnlog.catalog_docs, turnlog.catalog_texts, turnlog.catalog_words,
    turnlog.catalog_paths, turnlog.catalog_touched, turnlog.catalog_spent, turnlog.catalog_quarters,
    turnlog.catalog_meta;
do $$
declare
    app text;
begin
    for app in
        select distinct case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
        from pg_attribute as t, aclexplode(t.attacl) as a
        where t.attrelid = 'turnlog.own_sessions'::regclass and t.attname = 'mark' and a.privilege_type = 'UPDATE'
    loop
        execute format('grant update (is_conversation) on turnlog.own_sessions to %s', app);
    end loop;
end $$;
