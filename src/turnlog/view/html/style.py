"""How the HTML page looks."""

STYLE = """
:root { --ink: #1c1e21; --pale: #5c6269; --paper: #fff; --line: #dfe2e6; --box: #f5f6f8; --user: #eaf2fd;
  --blue: #1a5fb4; --green: #176f31; --red: #b3261e; --plus: #e2f4e6; --minus: #fde8e7; --yellow: #8a6100; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e5e8; --pale: #9aa1a9; --paper: #17191c; --line: #33373c;
  --box: #1f2226; --user: #1c2a3d; --blue: #83b6f5; --green: #6fcf87; --red: #ff8f87; --plus: #17301d; --minus: #3a1d1c;
  --yellow: #e0b34d; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; overflow-wrap: anywhere; }
header, main { max-width: 54rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 1.5rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .5rem; }
.facts { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: 0; padding: 0;
  color: var(--pale); font-size: .875rem; }
.notice { border-left: 3px solid var(--yellow); padding: .3rem .75rem; margin: 1rem 0; color: var(--pale);
  font-size: .875rem; }
.unfold { margin: .5rem 0; font-size: .875rem; }
.unfold label { padding: .25rem; }
@supports not selector(details::details-content) { .unfold { display: none; } }
body:has(#unfold:checked) details::details-content { content-visibility: visible; block-size: auto; }
.prompts { max-width: 54rem; max-height: 14rem; margin: 0 auto; padding: 0 1rem; overflow-y: auto; font-size: .875rem; }
.prompts ol { margin: 0; padding: 0; list-style: none; }
.prompts a { display: block; padding: .15rem 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
  text-decoration: none; }
.prompts a:hover { text-decoration: underline; }
@media (min-width: 88rem) { .prompts { position: fixed; left: 0; top: 0; bottom: 0; width: calc((100vw - 54rem) / 2);
  max-height: none; padding: 1.5rem 1rem; } }
article { border-top: 1px solid var(--line); padding: .75rem 0 1rem; }
article.user { background: var(--user); border: 0; border-radius: .6rem; padding: .6rem 1rem .8rem; margin: 1rem 0; }
article.user + article { border-top: 0; }
article.system { color: var(--pale); }
article:target, .event:target { outline: 2px solid var(--blue); outline-offset: 4px; }
h2 { display: flex; flex-wrap: wrap; gap: 0 .75rem; font-size: .8rem; font-weight: 400; margin: 0 0 .4rem;
  color: var(--pale); }
h2 b { color: var(--ink); }
h2 a { color: inherit; text-decoration: none; }
h2 a:hover { text-decoration: underline; }
h3, h4, h5, h6 { margin: 1.1rem 0 .4rem; line-height: 1.3; font-size: 1.05rem; }
p { margin: .5rem 0; }
.said { white-space: pre-wrap; }
a { color: var(--blue); }
ul, ol { margin: .5rem 0; padding-left: 1.5rem; }
blockquote { margin: .5rem 0; padding-left: .9rem; border-left: 3px solid var(--line); color: var(--pale); }
code, pre { font: .85em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
code { background: var(--box); border-radius: .25rem; padding: .1em .3em; }
pre { background: var(--box); border-radius: .4rem; padding: .6rem .8rem; margin: .5rem 0; overflow-x: auto;
  overflow-wrap: normal; font-size: .8rem; max-height: 34rem; overflow-y: auto; tab-size: 4; }
pre code { background: none; padding: 0; font-size: inherit; }
.thought pre, .aside pre, details.event pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.diff ins, .diff del, .diff i { text-decoration: none; font-style: normal; display: inline-block; min-width: 100%; }
.diff ins { background: var(--plus); } .diff del { background: var(--minus); } .diff i { color: var(--blue); }
summary ins, .call ins { color: var(--green); text-decoration: none; }
summary del, .call del { color: var(--red); text-decoration: none; }
.kw { color: var(--blue); } .st { color: var(--green); } .cm { color: var(--pale); } .nu { color: var(--yellow); }
details, p.call, p.output { margin: .3rem 0; font-size: .9rem; }
summary { cursor: pointer; padding: .15rem 0; }
summary span { color: var(--pale); font-size: .8rem; white-space: nowrap; }
summary code, p.call code, p.output code { background: none; padding: 0; }
.output { margin-left: 1.1rem; color: var(--pale); }
.output pre { color: var(--ink); }
.error > summary, p.error, p.event.error { color: var(--red); }
.thought, .aside { color: var(--pale); }
.event { color: var(--yellow); font-size: .875rem; margin: .8rem 0; }
.event pre { color: var(--ink); }
.attachment { color: var(--pale); font-size: .9rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { border: 1px solid var(--line); padding: .25rem .6rem; text-align: left; overflow-wrap: normal; }
.right { text-align: right; }
hr { border: 0; border-top: 1px solid var(--line); }
@media print { details::details-content { content-visibility: visible; block-size: auto; } pre { max-height: none; }
  .prompts, .unfold { display: none; } }
"""
