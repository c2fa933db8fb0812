/* How the pages look: on a screen by day and night, on a phone, and printed. */
#include <stdbool.h>

#include "page.h"
#include "palette.h"

static const struct {
    unsigned light, dark;
} COLOURS[] = {
    {BLUE, 0x4fadea}, {ORANGE, 0xf0b535},    {GREEN, 0x2fc79a}, {PURPLE, 0xe09cc0},
    {SKY, 0x8accf3},  {VERMILION, 0xff8a45}, {STEEL, 0x7a889c}, {INK, 0xe8eaed},
    {GREY, 0xa3abb5}, {PALE, 0x353c45},      {PAPER, 0x14181d},
};

enum {
    NCOLOURS = sizeof(COLOURS) / sizeof(COLOURS[0])
};

static void print_colours(bool dark, const char *indent, FILE *to)
{
    for (size_t i = 0; i < NCOLOURS; i++) {
        unsigned c = dark ? COLOURS[i].dark : COLOURS[i].light;
        fprintf(to, "%s.f%06x{fill:#%06x}.s%06x{fill:none;stroke:#%06x}\n", indent,
                COLOURS[i].light, c, COLOURS[i].light, c);
    }
}

void page_colours(FILE *to)
{
    print_colours(false, "", to);
    /* Paper is white whatever the screen was. */
    fputs("@media screen and (prefers-color-scheme:dark){\n", to);
    print_colours(true, "", to);
    fputs("}\n", to);
}

const char PAGE_STYLE[] =
    ":root{color-scheme:light dark;--paper:#fff;--card:#f5f7f9;--ink:#1c2127;--soft:#5b6570;"
    "--line:#dde2e7;--accent:#0072b2;--bad:#b84a00;--good:#00694d}\n"
    "@media screen and (prefers-color-scheme:dark){:root{--paper:#14181d;--card:#1c2229;"
    "--ink:#e8eaed;--soft:#a3abb5;--line:#303841;--accent:#5cb3ea;--bad:#ff9a5c;--good:#43cfa4}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,-apple-system,"
    "'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;-webkit-text-size-adjust:100%}\n"
    "header,main,footer{max-width:900px;margin:0 auto;padding:0 20px}\n"
    "header{padding-top:36px}\n"
    ".kicker{margin:0;color:var(--soft);font-size:0.875rem;overflow-wrap:anywhere}\n"
    ".kicker b{color:var(--accent);font-weight:650;letter-spacing:.02em}\n"
    "h1{margin:10px 0 "
    "12px;font-size:1.812rem;line-height:1.25;font-weight:650;letter-spacing:-.01em;"
    "overflow-wrap:anywhere;text-wrap:pretty}\n"
    "h1::first-letter{text-transform:uppercase}h1.long{font-size:1.375rem;line-height:1.35}\n"
    "h2{margin:44px 0 4px;font-size:1.25rem;font-weight:650}\n"
    "h3{margin:22px 0 4px;font-size:1rem;font-weight:650}\n"
    "p{margin:6px 0}\n"
    ".how,figcaption,.note{color:var(--soft);font-size:0.9062rem;overflow-wrap:anywhere}\n"
    ".emulated{margin:14px 0;padding:9px 14px;border:2px solid var(--bad);border-radius:8px;"
    "color:var(--bad);overflow-wrap:anywhere}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,max(9.5rem,22%)),"
    "1fr));gap:"
    "12px;margin:24px 0 "
    "8px;padding:0}\n"
    ".tile{background:var(--card);border-radius:10px;padding:13px 15px;min-width:0}\n"
    ".tile dt{color:var(--soft);font-size:0.8125rem;line-height:1.3}\n"
    ".tile dd{margin:3px 0 0;font-size:1.438rem;font-weight:650;letter-spacing:-.01em;"
    "font-variant-numeric:tabular-nums;line-height:1.25;overflow-wrap:anywhere}\n"
    ".tile small{display:block;color:var(--soft);font-size:0.7812rem;font-weight:400;"
    "letter-spacing:0;line-height:1.35}\n"
    ".lead{margin:14px 0 "
    "0;color:var(--accent);font-weight:650;overflow-wrap:anywhere}.lead+h1{margin-top:"
    "2px}\n"
    "th small,.why{display:block;color:var(--soft);font-size:.78rem;line-height:1.35;"
    "white-space:normal}.data th small{max-width:19rem}.some tbody th{width:36%}\n"
    ".data tr>th:first-child{position:sticky;left:0;background:var(--paper)}\n"
    ".tile.bad dd{color:var(--bad)}.tile.good dd{color:var(--good)}\n"
    ".findings{list-style:none;margin:10px 0;padding:0}\n"
    ".findings li{margin:8px 0;padding:9px 14px;background:var(--card);border-left:4px solid "
    "var(--accent);border-radius:0 8px 8px 0;overflow-wrap:anywhere}\n"
    ".try{user-select:all;white-space:pre-wrap;overflow-wrap:anywhere;margin:8px 0 0;padding:6px "
    "10px;border:1px solid var(--line);border-radius:4px;font-size:0.8125rem}\n"
    ".findings code{color:var(--soft);font-size:0.8125rem;display:block}\n"
    "table.data thead th{white-space:normal;overflow-wrap:anywhere;min-width:5.5em}\n"
    "h1.asis::first-letter{text-transform:none}\n"
    ".option{white-space:nowrap}\n"
    "figure{margin:0}figcaption{margin:2px 0 10px}\n"
    "svg{display:block;width:100%;height:auto;font-family:inherit}\n"
    "svg text{font-variant-numeric:tabular-nums}\n"
    ".narrow{display:none}\n"
    ".scroll{overflow-x:auto}\n"
    "table{border-collapse:collapse;width:100%;font-size:0.9062rem;font-variant-numeric:tabular-"
    "nums}"
    "\n"
    "th,td{padding:5px 10px 5px 0;border-bottom:1px solid var(--line);text-align:right;"
    "vertical-align:top;overflow-wrap:anywhere}\n"
    "th{overflow-wrap:normal}.tight td{white-space:nowrap}\n"
    "td:last-child,th:last-child{padding-right:0}\n"
    "th:first-child,.left td{text-align:left;font-weight:400}\n"
    "thead th{color:var(--soft);font-weight:500;overflow-wrap:normal}\n"
    ".data th,.data td{white-space:nowrap;overflow-wrap:normal}\n"
    "tbody.group th[colspan]{padding-top:14px;font-weight:650;color:var(--ink)}\n"
    "a{color:var(--accent)}\n"
    "pre{background:var(--card);border-radius:8px;padding:12px 14px;font-size:0.875rem;"
    "white-space:pre-wrap;overflow-wrap:anywhere}\n"
    "code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}\n"
    "details{margin:10px 0}summary{cursor:pointer;color:var(--accent)}\n"
    ".files{columns:3;font-size:0.9062rem;padding-left:18px;overflow-wrap:anywhere}\n"
    "footer{margin-top:52px;padding-bottom:36px;color:var(--soft);font-size:0.8438rem;"
    "overflow-wrap:anywhere}\n"
    "@media screen and (max-width:40em){.wide{display:none}.narrow{display:block}"
    "header,main,footer{padding-left:10px;padding-right:10px}header{padding-top:20px}"
    "h1{font-size:1.375rem}h1.long{font-size:1.125rem}.tile{padding:10px 12px}.tile "
    "dd{font-size:1.188rem}.files{columns:1}}\n"
    /* Where columns would not fit, a row's name stands above its values. */
    "@media screen and (max-width:40em){.some,.some thead,.some tbody{display:block}"
    ".some tr{display:grid;grid-template-columns:repeat(var(--n),minmax(0,1fr));gap:0 10px;"
    "border-bottom:1px solid var(--line);padding:5px 0}"
    ".some th,.some td{border:0;padding:0;text-align:left;overflow-wrap:anywhere}"
    ".some tbody th{grid-column:1/-1}.some thead th:first-child{display:none}"
    ".some tbody th{width:auto}"
    ".data th:first-child{white-space:normal;min-width:7em;max-width:9em}}\n"
    ".command{position:relative}.command .try{padding-right:76px}\n"
    ".copy{position:absolute;top:4px;right:4px;font:inherit;font-size:0.8125rem;padding:2px 9px;"
    "border:1px solid var(--line);border-radius:4px;background:var(--paper);color:var(--accent);"
    "cursor:pointer}\n"
    /* Four pages: small plots two by two, tables in columns, nothing folded, no list of files. */
    "@media print{body{font-size:10pt;line-height:1.35}header,main,footer{max-width:none;padding:0}"
    "header{padding-top:0}h1{font-size:18pt;margin:4px 0}h1.long{font-size:14pt}"
    "h2{font-size:12pt;margin:12px 0 2px}"
    ".tiles{grid-template-columns:repeat(4,1fr);gap:6px;margin:10px 0 4px}"
    ".tile{padding:6px 9px}.tile dd{font-size:14pt}"
    ".tile,.findings li{background:none;border:1px solid var(--line)}"
    ".findings li{margin:4px 0;padding:5px 9px}.copy,.screen,details,th small{display:none}"
    ".command .try{padding-right:10px}"
    ".plots{display:grid;grid-template-columns:1fr 1fr 1fr;gap:0 14px}.plots "
    ".timeline{grid-column:1/4}"
    ".plots .plot:not(.timeline) .wide{display:none}.plots .plot:not(.timeline) "
    ".narrow{display:block}.plots figcaption{font-size:7.5pt;margin:0 0 3px}"
    "section.plot,figure,.tile,tr{break-inside:avoid}h2,h3{break-after:avoid}"
    ".scroll{overflow:visible}table{font-size:8pt}th,td{padding:1px 8px 1px 0}"
    "tbody.group th[colspan]{padding-top:6px}.data{font-size:7.5pt}"
    ".numbers .scroll{columns:3;column-gap:16px}.numbers table{display:block}"
    ".numbers tbody{display:table;width:100%;break-inside:avoid}"
    ".numbers .left tbody{break-inside:auto}"
    "footer{margin-top:10px;padding:0}a{color:inherit;text-decoration:none}@page{margin:12mm}}\n";

/* A button that copies beside each command. */
const char PAGE_SCRIPT[] =
    "document.querySelectorAll('pre.try').forEach(function(p){"
    "var d=document.createElement('div'),b=document.createElement('button');"
    "d.className='command';b.className='copy';b.type='button';b.textContent='Copy';"
    "p.parentNode.insertBefore(d,p);d.appendChild(p);d.appendChild(b);"
    "function done(){b.textContent='Copied';setTimeout(function(){b.textContent='Copy'},2000)}"
    "function old(){var r=document.createRange(),s=getSelection();r.selectNodeContents(p);"
    "s.removeAllRanges();s.addRange(r);if(document.execCommand('copy'))done()}"
    "b.addEventListener('click',function(){if(navigator.clipboard)"
    "navigator.clipboard.writeText(p.textContent).then(done,old);else old()})})";
