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
      const numbers = (path?.getAttribute("d").match(/-?[\d.]+(e-?\d+)?/g) || []).map(Number);
      const points = [];
      for (let i = 0; i + 1 < numbers.length; i += 2) points.push([numbers[i], numbers[i + 1]]);
      return { name, points, color: path ? path.style.stroke : "" };
    });
    const time = (x) => axes.x[0] + (x - left) / (right - left) * (axes.x[1] - axes.x[0]);
    return { left, right, curves, value, time };
  };
  for (const figure of document.querySelectorAll("figure[data-axes]")) {
    const svg = figure.querySelector("svg");
    let axes = null;
    svg.addEventListener("pointermove", (event) => {
      axes ??= read(figure);
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      if (at.x < axes.left || at.x > axes.right) { box.style.display = "none"; return; }
      const lines = [`t = ${axes.time(at.x).toPrecision(4)} s`];
      for (const { name, points } of axes.curves) {
        let near = null;
        for (const p of points) if (!near || Math.abs(p[0] - at.x) < Math.abs(near[0] - at.x)) near = p;
        if (near && Math.abs(near[0] - at.x) < 6) lines.push(`${name}: ${axes.value(near[1]).toPrecision(4)}`);
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
