// Style and script of the report page. The page must work offline, print, and follow light or dark.
#pragma once

namespace samebits {

inline constexpr const char kReportStyle[] = R"css(
:root{--bg:#fbfbfa;--fg:#1b1f24;--dim:#667;--line:#d7dade;--card:#fff;--same:#3f8f5f;--order:#d9a520;--diff:#c8453b;--none:#e4e6e9;--accent:#2f6db3}
@media(prefers-color-scheme:dark){:root{--bg:#15181c;--fg:#e6e8ea;--dim:#98a0aa;--line:#333a42;--card:#1c2025;--same:#4aa873;--order:#d9a93a;--diff:#e0655b;--none:#2c3239;--accent:#6aa5e8}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1180px;padding:20px 16px 48px;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:15px;font-weight:600;color:var(--dim);margin:0 0 6px}
h2{font-size:18px;margin:34px 0 10px}
h3{font-size:16px;margin:0 0 6px}
.verdict{font-size:23px;line-height:1.35;font-weight:600;margin:0 0 12px;padding:14px 16px;border-left:6px solid;background:var(--card);overflow-wrap:anywhere}
.v0{border-color:var(--same)}.v1{border-color:var(--diff)}.v2{border-color:var(--order)}
.dim,figcaption,.note{color:var(--dim);font-size:13px}
code,.mono,table.data td,table.win{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:12.5px}
.sides{display:grid;grid-template-columns:auto 1fr;gap:2px 12px;margin:0 0 8px}
.sides b{font-weight:600}.sides span{overflow-wrap:anywhere}
.scroll{overflow-x:auto;max-width:100%}
.pick{margin:0 0 10px;display:flex;flex-wrap:wrap;gap:8px 18px}
select{font:inherit;background:var(--card);color:var(--fg);border:1px solid var(--line);border-radius:4px;padding:3px 6px;max-width:100%}
table{border-collapse:collapse}
table.heat td{padding:0;border:1px solid var(--bg)}
table.heat th{font-weight:400;font-size:12px;color:var(--dim);padding:0 6px 0 0;text-align:right;white-space:nowrap}
table.heat thead th{vertical-align:bottom;padding:0;text-align:left}
table.heat thead span{writing-mode:vertical-rl;transform:rotate(180deg);padding:4px 2px;white-space:nowrap}
.c{display:block;width:22px;height:18px;border-radius:2px;background:var(--none)}
.s{background:var(--same)}.o{background:var(--order)}.d{background:var(--diff)}.n{background:var(--none)}
.o::after{content:"\2194";color:#000;font-size:11px;display:block;text-align:center;line-height:18px}
.d::after{content:"\00d7";color:#fff;font-size:13px;display:block;text-align:center;line-height:18px}
.legend{display:flex;flex-wrap:wrap;gap:6px 18px;margin-top:8px;font-size:13px;color:var(--dim)}
.legend span{display:flex;align-items:center;gap:6px}
.card{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:14px 16px;margin:0 0 16px;overflow-wrap:anywhere}
.tag{display:inline-block;font:600 12px ui-monospace,Menlo,Consolas,monospace;border:1px solid var(--accent);color:var(--accent);border-radius:4px;padding:1px 7px;margin-left:8px}
table.win td,table.win th{padding:2px 14px 2px 0;text-align:right;white-space:nowrap}
table.win tr.x td{color:var(--diff);font-weight:600}
table.data{width:100%;font-size:13px}
table.data th{text-align:left;border-bottom:2px solid var(--line);padding:5px 12px 5px 0;cursor:pointer;white-space:nowrap;user-select:none}
table.data th::after{content:" \2195";color:var(--dim)}
table.data td{border-bottom:1px solid var(--line);padding:4px 12px 4px 0;vertical-align:top}
table.data td:first-child{min-width:150px}
svg text{fill:var(--dim);font:12px system-ui,sans-serif}
svg .axis{stroke:var(--line)}
figure{margin:0 0 12px}
svg{max-width:100%;height:auto}
footer{margin-top:34px;border-top:1px solid var(--line);padding-top:12px}
@media(max-width:520px){figure{overflow-x:auto}figure>svg{min-width:520px}.verdict{font-size:19px}.c{width:18px}}
@media print{body{max-width:none;padding:0}.pick{display:none}.card{break-inside:avoid}th::after{content:""!important}*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
)css";

inline constexpr const char kReportScript[] = R"js(
const names={s:'same',o:'order only',d:'differs',n:'not compared'};
const map=document.getElementById('map'),tok=document.getElementById('tok');
function paint(){
  if(map)document.querySelectorAll('.heatmap').forEach(h=>h.hidden=h.dataset.k!==map.value);
  const t=tok?tok.value:'';
  document.querySelectorAll('.c[data-w]').forEach(c=>{
    let k=c.dataset.w;
    if(t!==''&&c.dataset.t)k={'=':'s','o':'o','x':'d'}[c.dataset.t[+t]]||'n';
    c.className='c '+k;
  });
}
if(map)map.onchange=paint;
if(tok)tok.onchange=paint;
paint();
document.querySelectorAll('table.data').forEach(table=>table.querySelectorAll('th').forEach((th,i)=>th.onclick=()=>{
  const body=table.tBodies[0],rows=[...body.rows],down=th.dataset.d!=='1';
  table.querySelectorAll('th').forEach(x=>delete x.dataset.d);th.dataset.d=down?'1':'0';
  const key=r=>r.cells[i].textContent,num=x=>x.trim()!==''&&!isNaN(+x.replace(/,/g,''));
  rows.sort((p,q)=>{const a=key(p),b=key(q);const c=num(a)&&num(b)?+a.replace(/,/g,'')-+b.replace(/,/g,''):a.localeCompare(b,'en',{numeric:true});return down?c:-c});
  rows.forEach(r=>body.appendChild(r));
}));
)js";

}  // namespace samebits
