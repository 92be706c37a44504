// For every page: / searches, j and k walk through a list, and times say how long ago they were.
"use strict";
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && !typing) {
    event.preventDefault();
    document.getElementById("search")?.select();
  } else if (event.key === "Escape" && typing) {
    event.target.blur();
  } else if ((event.key === "j" || event.key === "k") && !typing) {
    const links = [...document.querySelectorAll("#results a")];
    if (links.length === 0) return;
    const at = links.indexOf(document.activeElement);
    const next = event.key === "j" ? at + 1 : at < 0 ? links.length - 1 : at - 1;
    links[Math.max(0, Math.min(links.length - 1, next))].focus();
  }
});
for (const time of document.querySelectorAll("time.ago")) {
  const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
  const units = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60]];
  const [unit, size] = units.find(([, length]) => seconds >= length) ?? ["second", 1];
  if (seconds < 0 || Number.isNaN(seconds)) continue;  // a clock is wrong: the date itself says more
  const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  time.textContent = words.format(-Math.floor(seconds / size), unit);
}
