// Shows the values of the curves at the pointer: their points are read from the SVG itself.
(() => {
  const box = document.createElement("div");
  box.className = "hover";
  document.body.append(box);
  const read = (figure) => {
    const axes = JSON.parse(figure.dataset.axes);
    const [left, right, top, bottom] = axes.box;
    const log = Math.log10;
    const value = (y) => {
      const share = (bottom - y) / (bottom - top);
      const [low, high] = axes.log ? axes.y.map(log) : axes.y;
      const result = low + share * (high - low);
      return axes.log ? 10 ** result : result;
    };
    const curves = Object.entries(axes.names).map(([id, name]) => {
      const path = document.getElementById(id)?.querySelector("path");
      const pieces = (path?.getAttribute("d") || "").split("M").slice(1);  // a gap starts a new one
      return { name, pieces: pieces.map((text) => {
        const numbers = (text.match(/-?[\d.]+/g) || []).map(Number);
        return numbers.filter((_, i) => i % 2 === 0).map((x, i) => [x, numbers[2 * i + 1]]);
      }) };
    });
    const time = (x) => axes.x[0] + (x - left) / (right - left) * (axes.x[1] - axes.x[0]);
    return { left, right, curves, value, time };
  };
  const height = (pieces, x) => {  // straight between two points
    for (const points of pieces) {
      const next = points.findIndex((p) => p[0] >= x);
      if (next < 1) continue;
      const [[x0, y0], [x1, y1]] = points.slice(next - 1, next + 1);
      return y0 + (x1 > x0 ? (x - x0) / (x1 - x0) : 0) * (y1 - y0);
    }
    return null;
  };
  for (const figure of document.querySelectorAll("figure[data-axes]")) {
    const svg = figure.querySelector("svg");
    let axes = null;
    svg.addEventListener("pointermove", (event) => {
      axes ??= read(figure);
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      if (at.x < axes.left || at.x > axes.right) { box.style.display = "none"; return; }
      const lines = [`t = ${axes.time(at.x).toPrecision(4)} s`];
      for (const { name, pieces } of axes.curves) {
        const y = height(pieces, at.x);
        if (y !== null) lines.push(`${name}: ${axes.value(y).toPrecision(4)}`);
      }
      box.textContent = lines.join("\n");
      box.style.display = "block";
      const wide = box.offsetWidth + 16;
      box.style.left = `${Math.min(event.pageX + 12, scrollX + innerWidth - wide)}px`;
      box.style.top = `${event.pageY + 14}px`;
    });
    svg.addEventListener("pointerleave", () => { box.style.display = "none"; });
  }
})();
