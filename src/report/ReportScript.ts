/**
 * What the report's script adds, and nothing that the page needs: the worklist can be filtered and sorted,
 * and the timeline zoomed by buttons, keys and dragging. It reads the page and its data, and asks nobody.
 */

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
