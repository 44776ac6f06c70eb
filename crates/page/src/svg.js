/** Appends a new SVG element with attributes, and with text if there is any, to a parent element. */
const makeSvg = (name, parent, attributes, text) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
};
