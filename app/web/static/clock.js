// "12 s ago" beside the exact time, which stays in the tooltip.
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
const words = new Intl.RelativeTimeFormat("en", { numeric: "always" });

function ago(seconds) {
  const [unit, size] = UNITS.find(([, s]) => seconds >= s) ?? UNITS.at(-1);
  return words.format(-Math.floor(seconds / size), unit);
}

export function tick(root = document) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const seconds = Math.max(0, (Date.now() - Date.parse(time.dateTime)) / 1000);
    time.title ||= time.textContent;
    time.textContent = ago(seconds);
  }
}
