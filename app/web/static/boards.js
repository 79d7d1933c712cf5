const form = document.querySelector("#open");

form.addEventListener("submit", (event) => {
  event.preventDefault();
  location.assign(`/boards/${encodeURIComponent(form.elements.namedItem("slug").value.trim())}`);
});
