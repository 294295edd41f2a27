import { useEffect, useRef } from "preact/hooks";

/** Returns a function that passes on a request's answer, or its error.
 *
 * It drops what arrives after the answer to a newer request, or after the component is gone.
 */
export function useOrdered(): <T>(answer: Promise<T>, take: (found: T) => void, fail: (error: Error) => void) => void {
  const requests = useRef(0), answered = useRef(0);  // number of the newest request, and of the newest answered one
  useEffect(() => () => { answered.current = Infinity; }, []);
  return (answer, take, fail) => {
    const number = ++requests.current;
    const inOrder = <V>(use: (value: V) => void) => (value: V): void => {
      if (number < answered.current) return;
      answered.current = number;
      use(value);
    };
    answer.then(inOrder(take), inOrder(fail));
  };
}
