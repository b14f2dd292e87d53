/**
 * The report of a run as one HTML file that needs nothing else: its style and its small script are inside.
 * Pure.
 */
import { html, nothing, pageHead, scriptElement } from "./Html.ts"
import type { Report } from "./Report.ts"
import { timelineSection } from "./ReportCharts.ts"
import {
  callsSection,
  changesSection,
  coverageSection,
  deletionsSection,
  enginesSection,
  headSection,
  worklistSection,
} from "./ReportTables.ts"
import { clockIn } from "./TextTable.ts"

// What the report's script adds, and nothing that the page needs: the worklist can be filtered and sorted,
// and the timeline zoomed by buttons, keys and dragging. It reads the page and its data, and asks nobody.

export const reportScript = `
"use strict";
const $=(id)=>document.getElementById(id);
for(const tools of document.querySelectorAll(".tools"))tools.hidden=false;
const list=$("worklist");
if(list){
  const body=list.tBodies[0],rows=[...body.rows],text=$("filter"),actor=$("actor"),shown=$("shown");
  const words=new Map(rows.map((row)=>[row,row.textContent.toLowerCase()]));
  const apply=()=>{
    const wanted=text.value.toLowerCase();let count=0;
    for(const row of rows){
      const keep=words.get(row).includes(wanted)&&(actor.value===""||row.cells[1].textContent===actor.value);
      row.hidden=!keep;if(keep)count++;
    }
    shown.textContent=count+" of "+rows.length+" shown";
  };
  text.addEventListener("input",apply);actor.addEventListener("change",apply);
  [...list.tHead.rows[0].cells].forEach((cell,index)=>{
    const button=document.createElement("button");
    button.type="button";button.textContent=cell.textContent;cell.replaceChildren(button);
    button.addEventListener("click",()=>{
      const down=cell.getAttribute("aria-sort")==="ascending";
      for(const other of cell.parentElement.cells)other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort",down?"descending":"ascending");
      rows.sort((a,b)=>a.cells[index].textContent.localeCompare(b.cells[index].textContent)*(down?-1:1));
      body.append(...rows);
    });
  });
}
const source=$("executions"),canvas=$("zoom");
if(source&&canvas){
  const {begin,end,engines,zone,rows}=JSON.parse(source.textContent);
  const whole=Math.max(1,Math.round((end-begin)/100)),pen=canvas.getContext("2d"),said=$("said");
  const time=new Intl.DateTimeFormat("en-GB",{
timeZone:zone,hour:"2-digit",minute:"2-digit",second:"2-digit"});
  const at=(tenth)=>time.format(begin+tenth*100);
  let from=0,to=whole,visible=[],drag;
  canvas.hidden=false;document.documentElement.classList.add("script");
  const draw=()=>{
    const style=getComputedStyle(document.documentElement),colour=(name)=>style.getPropertyValue(name).trim();
    const w=canvas.clientWidth,h=canvas.clientHeight,ratio=devicePixelRatio||1,foot=20;
    canvas.width=w*ratio;canvas.height=h*ratio;pen.setTransform(ratio,0,0,ratio,0,0);
    pen.clearRect(0,0,w,h);
    visible=rows.filter((row)=>row[4]>=from&&row[1]<=to);
    const size=(h-foot)/Math.max(8,visible.length),x=(tenth)=>(tenth-from)/(to-from)*w;
    const part=(name,a,b,y)=>{if(b>a){pen.fillStyle=colour(name);
      pen.fillRect(x(a),y,Math.max(.7,x(b)-x(a)),Math.max(.3,size*.85))}};
    visible.forEach((row,index)=>{
      const y=index*size;
      part("--waiting",row[1],row[2],y);part("--queued",row[2],row[3],y);part("--running",row[3],row[4],y);
      if(row[5]){pen.fillStyle=colour("--bad");pen.fillRect(x(row[4])-3,y,4,Math.max(.6,size*.85))}
    });
    pen.fillStyle=colour("--soft");pen.font="12px system-ui,sans-serif";
    if(size>=13){pen.strokeStyle=colour("--page");pen.fillStyle=colour("--text");pen.lineWidth=3;
      visible.forEach((row,index)=>{
const words=row[6]+" "+engines[row[0]],left=Math.max(4,x(row[1])+4),y=index*size+size*.7;
        pen.strokeText(words,left,y);pen.fillText(words,left,y)});
      pen.fillStyle=colour("--soft")}
    pen.textAlign="left";pen.fillText(at(from),2,h-5);
    pen.textAlign="right";pen.fillText(at(to),w-2,h-5);pen.textAlign="left";
    said.textContent=visible.length+" executions from "+at(from)+" to "+at(to);
  };
  const show=(a,b)=>{const width=Math.min(whole,Math.max(10,b-a));
    from=Math.min(Math.max(0,a),whole-width);to=from+width;draw()};
  const zoom=(factor)=>{const middle=(from+to)/2,half=(to-from)/2*factor;show(middle-half,middle+half)};
  const move=(part)=>{const by=(to-from)*part;show(from+by,to+by)};
  const acts={in:()=>zoom(.5),out:()=>zoom(2),left:()=>move(-.25),right:()=>move(.25),all:()=>show(0,whole)};
  for(const button of document.querySelectorAll("[data-act]"))
    button.addEventListener("click",acts[button.dataset.act]);
  const keys={"+":"in","=":"in","-":"out",ArrowLeft:"left",ArrowRight:"right","0":"all"};
  canvas.addEventListener("keydown",(event)=>{const act=keys[event.key];if(act){event.preventDefault();
acts[act]()}});
  const tenth=(event)=>from+(to-from)*event.offsetX/canvas.clientWidth;
  canvas.addEventListener("pointerdown",(event)=>{drag=tenth(event)});
  canvas.addEventListener("pointerup",(event)=>{
    const other=tenth(event);
    if(drag!==undefined&&Math.abs(other-drag)>(to-from)/50)show(Math.min(drag,other),Math.max(drag,other));
    drag=undefined});
  canvas.addEventListener("pointermove",(event)=>{
    const row=visible[Math.floor(event.offsetY/((canvas.clientHeight-20)/Math.max(8,visible.length)))];
    if(row)said.textContent=row[6]+" "+engines[row[0]]+": queued "+at(row[2])+", running "+at(row[3])+
      ", ended "+at(row[4])+(row[5]?", did not succeed":"")});
  addEventListener("resize",draw);
  matchMedia("(prefers-color-scheme:dark)").addEventListener("change",draw);
  draw();
}
`.trim()

// How the report looks: one style for phone, desktop and paper, light and dark by the reader's own setting.
// Text has a contrast of 4.5 to 1 at least, charts of 3 to 1 (WCAG 2.2 AA); colour is never the only sign.

export const reportStyle = `
:root{color-scheme:light dark;--page:#fff;--text:#1c2128;--soft:#57606a;--line:#d0d7de;--panel:#f6f8fa;
--link:#0550ae;--running:#2f6fd0;--queued:#7d5bbe;--waiting:#a15c00;--bad:#c0252d;--good:#1a7f37;
--warn:#8a5a00}
@media (prefers-color-scheme:dark){:root{--page:#0e1217;--text:#e6edf3;--soft:#9aa5b1;--line:#343b44;
--panel:#161b22;--link:#79b8ff;--running:#5a9cff;--queued:#b392f0;--waiting:#e09a3a;--bad:#ff7b72;
--good:#56d364;
--warn:#e3b341}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1rem;background:var(--page);color:var(--text);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{font-size:1.5rem;line-height:1.25;margin:.25rem 0;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2rem 0 .5rem;padding-top:.75rem;border-top:1px solid var(--line)}
h3{font-size:1rem;margin:1.25rem 0 .4rem}
p{margin:.4rem 0;max-width:70ch}
a{color:var(--link)}
:focus-visible{outline:2px solid var(--link);outline-offset:2px}
.soft{color:var(--soft)}
.skip{position:absolute;left:-99rem}
.skip:focus{left:1rem;top:.5rem;background:var(--page);padding:.25rem .5rem}
nav{display:flex;flex-wrap:wrap;gap:.25rem .9rem;margin:.75rem 0}
.status{display:inline-block;border:2px solid;border-radius:.4rem;padding:.1rem .55rem;font-weight:700}
.code0,.good{color:var(--good)}.code3,.code4,.warn{color:var(--warn)}.code1,.code6,.trouble{
color:var(--bad)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.6rem;margin:1rem 0;
padding:0}
.tiles li{list-style:none;background:var(--panel);border:1px solid var(--line);border-radius:.5rem;
padding:.5rem .75rem}
.tiles b{display:block;font-size:1.5rem;line-height:1.2;font-variant-numeric:tabular-nums}
code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;font-size:.92em;
overflow-wrap:anywhere}
.command{display:block;background:var(--panel);border:1px solid var(--line);border-radius:.5rem;
padding:.6rem .75rem;
margin:.5rem 0;user-select:all}
.scroll{overflow-x:auto;max-width:100%}
.tall{max-height:32rem;overflow-y:auto}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid var(--line)}
td{overflow-wrap:anywhere;min-width:8.5rem}
th{white-space:nowrap;color:var(--soft);font-weight:600}
.tall thead th{position:sticky;top:0;background:var(--page)}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap;min-width:0}
th button,.tools button{font:inherit;color:inherit;background:none;border:1px solid transparent;
border-radius:.3rem;
cursor:pointer;padding:0 .3rem;min-height:1.75rem}
.tools button{border-color:var(--line);background:var(--panel);min-width:2.5rem}
.tools{display:flex;flex-wrap:wrap;gap:.4rem;align-items:center;margin:.5rem 0}
.tools label{display:flex;gap:.35rem;align-items:center}
input,select{font:inherit;color:inherit;background:var(--page);border:1px solid var(--soft);
border-radius:.3rem;
padding:.15rem .4rem;max-width:100%}
.groups{padding:0;margin:.5rem 0}
.groups li{list-style:none;border-left:4px solid var(--line);padding:.1rem 0 .1rem .75rem;margin:.75rem 0}
.groups li.new{border-color:var(--bad)}.groups li.still{border-color:var(--warn)}.groups li.mended{
border-color:var(--good)}
.groups p{margin:.1rem 0;overflow-wrap:anywhere}
.stack td:last-child{min-width:18rem}
.chart,canvas{display:block;width:100%;height:auto;background:var(--panel);border:1px solid var(--line);
border-radius:.4rem;margin:.4rem 0}
canvas{height:22rem;touch-action:pan-y}
.spark{width:11.25rem;height:3.1rem;display:block}
.running{fill:var(--running)}.queued{fill:var(--queued)}.waiting{fill:var(--waiting)}.bad{fill:var(--bad)}
.tick{stroke:var(--line)}
.axis{fill:var(--soft);font-size:12px;text-anchor:middle}.axis.start{text-anchor:start}
polyline{fill:none;stroke-width:1.8}
.p50{stroke:var(--running)}circle.p50{fill:var(--running)}
.p95{stroke:var(--waiting);stroke-dasharray:4 2}circle.p95{fill:var(--waiting)}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1rem;padding:0;margin:.4rem 0;font-size:.92rem}
.legend li{list-style:none;display:flex;gap:.4rem;align-items:center}
.legend svg{width:14px;height:14px}
.bar{width:100%;min-width:6rem;height:.8rem;display:block}
.bar .rest{fill:var(--line)}.bar .good{fill:var(--good)}
output{display:block;min-height:1.5rem}
[hidden]{display:none!important}
@media (max-width:40rem){.chart{min-width:44rem}
.stack thead{position:absolute;left:-99rem}.stack tr{display:block;padding:.5rem 0;
border-bottom:1px solid var(--line)}
.stack td,.stack td:last-child{min-width:0;display:grid;grid-template-columns:7.5rem 1fr;border:0;
padding:.1rem 0;text-align:left}
.stack td:empty{display:none}
.stack td::before{content:attr(data-name);color:var(--soft)}}
@media screen{.script .plain{display:none}}
@media print{:root{--page:#fff;--text:#000;--soft:#444;--line:#bbb;--panel:#fff}body{max-width:none;
padding:0;font-size:10pt}
nav,.tools,canvas,output,.skip{display:none!important}.tall{max-height:none;overflow:visible}.scroll{
overflow:visible}
h2,h3{break-after:avoid}tr,.groups li,svg{break-inside:avoid}thead{display:table-header-group}}
@media (prefers-reduced-motion:no-preference){html{scroll-behavior:smooth}}
`.trim()

const head = { style: reportStyle, script: reportScript }

const links = [
  ["changes", "What to do"],
  ["work", "Worklist"],
  ["timeline", "Timeline"],
  ["engines", "Engines"],
  ["coverage", "Coverage"],
  ["calls", "Calls"],
  ["deletions", "Deletions"],
] as const

/** The place of the newest fact that a page was made of; 0 if it does not say so. */
export const newestFactIn = (page: string): number =>
  Number(/<body data-newest-fact="(\d+)">/.exec(page)?.[1] ?? 0)

export const renderReport = (report: Report): string => {
  const clock = clockIn(report.timezone)
  const hasWork = report.worklist.length > 0
  const nav = links.map(([id, title]) =>
    id === "work" && !hasWork ? nothing : html`<a href="#${id}">${title}</a>`,
  )
  const page = html`<!doctype html>
    <html lang="en">
      ${pageHead({ ...head, title: report.summary.run_id })}
      <body data-newest-fact="${report.newest}">
        <a class="skip" href="#changes">Skip to what to do</a> ${headSection(report, clock)}
        <nav aria-label="Sections">${nav}</nav>
        <main>
          ${changesSection(report)} ${worklistSection(report)} ${timelineSection(report, clock)}
          ${enginesSection(report)} ${coverageSection(report)} ${callsSection(report)}
          ${deletionsSection(report)}
        </main>
        <footer>
          <h2>More</h2>
          <p>
            <code>nightjar explain ID</code> tells everything about a customer, task or reason;
            <code>nightjar report ${report.summary.run_id}</code> writes this page again.
          </p>
        </footer>
        ${scriptElement(head)}
      </body>
    </html> `
  return `${page.text.trim()}\n`
}
