// Keys for everybody: / searches, j and k walk through a list.
"use strict";
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && !typing) {
    event.preventDefault();
    document.getElementById("search").select();
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
