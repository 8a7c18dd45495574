(function(){'use strict';
var K={z:[1,1000,['','k','M','G','T']],n:[1,1000,['','k','M','G','T']],b:[1,1024,['B','kB','MB','GB','TB']],t:[.001,1000,['\u00b5s','ms','s']]};
function digits(v){return v===Math.round(v)?String(v):v.toFixed(v<10?2:v<100?1:0)}
function two(n){return(n<10?'0':'')+n}
function show(f,v){var k=K[f],i=0;
 if(f==='i')return[String(v),''];if(f==='p')return[digits(Math.round(v*1000)/10),'%'];
 if(f==='u')return[(v>=86400?Math.floor(v/86400)+' d ':'')+two(Math.floor(v/3600)%24)+':'+two(Math.floor(v/60)%60)+':'+two(v%60),''];
 if(f==='t'&&v<1e4)return v===0?['\u2013','']:['<10',k[2][0]];
 v*=k[0];while(v>=k[1]&&i<k[2].length-1){v/=k[1];i++}return[digits(v),k[2][i]]}
function get(o,key){return key.split('/').reduce(function(x,p){return x==null?x:x[p]},o)}
function at(ns){return Math.min(100,Math.max(0,Math.log10(Math.max(ns,1)/1e4)/7*100))+'%'}
function each(q,f){Array.prototype.forEach.call(document.querySelectorAll(q),f)}
function rows(o){return[o.workers.length,o.backends.length,o.devices.length]
.concat(o.backends.map(function(b){return b.state})).join()}
function fill(o){
 each('[data-k]',function(e){var v=get(o,e.dataset.k),s;if(v==null)return;s=show(e.dataset.f,v);
  e.textContent=s[0];e.classList.toggle('bad',e.dataset.f==='z'&&v>0);if(e.nextElementSibling&&e.nextElementSibling.tagName==='I')e.nextElementSibling.textContent=s[1]});
 each('[data-g]',function(e){e.style.flexGrow=get(o,e.dataset.g)});
 each('[data-s]',function(e){var s=get(o,e.dataset.s),c=e.children;e.classList.toggle('none',!s.count);
  c[0].style.left=c[1].style.left=at(s.p50_ns);c[0].style.width='calc('+at(s.p99_ns)+' - '+at(s.p50_ns)+')';
  c[2].style.left=at(s.max_ns)})}
var past={},last;
function line(o){var now=Date.now(),sec=last?(now-last.at)/1000:0;
 each('svg[data-d]',function(e){var k=e.dataset.d,v=get(o,k),h=past[k]||(past[k]=[]),top,n=60;
  if(sec>0)h.push(Math.max(0,v-last[k])/sec);if(h.length>n)h.shift();
  top=Math.max.apply(null,h.concat(1));
  e.firstElementChild.setAttribute('points',h.map(function(y,i){return(n-h.length+i)*100/(n-1)+','+(40-y*38/top)}).concat(h.length?['100,42',(n-h.length)*100/(n-1)+',42']:[]).join(' '))});
 last={at:now};each('svg[data-d]',function(e){last[e.dataset.d]=get(o,e.dataset.d)})}
var main=document.querySelector('main'),live=document.getElementById('live');
function anew(){return fetch(location.href,{cache:'no-store'}).then(function(r){return r.text()}).then(function(t){
 var m=new DOMParser().parseFromString(t,'text/html').querySelector('main');if(m){main.replaceWith(m);main=m}})}
function say(c,t){live.className=c;live.textContent=t}
function tick(){if(document.hidden)return setTimeout(tick,1000);
 fetch(location.pathname+'?json',{cache:'no-store'}).then(function(r){if(!r.ok)throw r.status;return r.json()})
 .then(function(o){if(rows(o)!==main.dataset.rows)return anew();fill(o);line(o);say('on','live')})
 .catch(function(){say('off','no answer')}).then(function(){setTimeout(tick,1000)})}
tick()})();
