import { useState } from "preact/hooks";
import { logIn, trouble } from "../api/session";

/** Login form. The token is sent to the controller once and stored nowhere. */
export function Login() {
  const [token, setToken] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    const given = token.trim();
    setToken("");
    if (given) void logIn(given);
  };
  return <main id="content" class="login">
    <h1>Five</h1>
    <p><code>five console</code> prints a link that logs this browser in. Or give a token of this run:</p>
    <form onSubmit={submit}>
      <label for="token">Token</label>
      <input id="token" type="password" autocomplete="off" spellcheck={false} value={token}
             onInput={(event) => setToken(event.currentTarget.value)} />
      <button type="submit" class="primary">Log in</button>
    </form>
    <p role="alert" class="bad">{trouble.value}</p>
  </main>;
}
