// The key of a private board: kept in this tab only, sent as a header, never part of an address.
const form = document.querySelector("#key-form");
const refused = document.querySelector("#key-refused");
const name = (board) => `orthorank.key.${board}`;

export function headers(board) {
  const key = sessionStorage.getItem(name(board));
  return key ? { Authorization: `Bearer ${key}` } : {};
}

export function askForKey(board, reason, open) {
  sessionStorage.removeItem(name(board));
  refused.textContent = reason;
  form.hidden = false;
  form.onsubmit = (event) => {
    event.preventDefault();
    sessionStorage.setItem(name(board), form.elements.namedItem("key").value.trim());
    form.reset();
    form.hidden = true;
    open();
  };
  form.elements.namedItem("key").focus();
}
