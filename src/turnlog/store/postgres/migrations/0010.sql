-- The branches of git that a session worked on. What the catalog has read is thrown away, and made again by who asks next.
alter table turnlog.catalog_sessions add column git_branches text not null default '';
create or replace view turnlog.own_sessions with (security_barrier) as select
    id, seq, name, native, is_ours, agent, path, key, workspace, title, preview, model, created, updated, messages,
    turns, tool_calls, branches, fork, parent, origin, copy_of, is_hidden, is_archived, is_deleted, is_copied,
    tags, models, unpriced, own, inherited, before, subagents, cost, ending, writer, damage, problem, size, resume,
    family, depth, totals, stamp, mark, is_conversation, copied, carried, repeats, git_branches
    from turnlog.catalog_sessions where tenant = (select turnlog.tenant_num());
truncate turnlog.catalog_sessions, turnlog.catalog_docs, turnlog.catalog_texts, turnlog.catalog_words,
    turnlog.catalog_paths, turnlog.catalog_touched, turnlog.catalog_spent, turnlog.catalog_quarters,
    turnlog.catalog_meta;

-- Roles that had the rights to work here keep them.
do $$
declare
    app text;
begin
    for app in
        select distinct case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
        from pg_class as c join pg_attribute as t on t.attrelid = c.oid, aclexplode(t.attacl) as a
        where c.oid = 'turnlog.own_sessions'::regclass and t.attname = 'mark'
            and a.grantee <> c.relowner and a.privilege_type = 'UPDATE'
    loop
        execute format('grant update (git_branches) on turnlog.own_sessions to %s', app);
    end loop;
end $$;
