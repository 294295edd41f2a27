import { useEffect, useState } from "preact/hooks";
import { clockOffset } from "../api/client";

/** The current time by the controller's clock, in seconds since the epoch. The component renders again every second. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now() / 1000), 1000);
    return () => clearInterval(timer);
  }, []);
  return now + clockOffset.value;
}
