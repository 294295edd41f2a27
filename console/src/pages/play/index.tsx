import { isOperator } from "../../api/session";
import { base } from "../../base";
import { go, path, query } from "../../shell/route";
import { Link } from "../../shell/link";
import { Player } from "../../play/view/player.tsx";
import { Lobby } from "./lobby";
import "../../games/games.css";
import "./play.css";

/** The lobby, and below its own path each game. */
export function PlayPage() {
  const [, , game] = path.value.split("/");
  if (!game) return <Lobby />;
  // A viewer may only watch: the server refuses to let him play.
  const spectate = query.value.has("spectate") || !isOperator.value;
  const address = `${base}/v1/play/games/${encodeURIComponent(game)}/socket${spectate ? "?spectate=1" : ""}`;
  return <><h1 class="sr">Game {game}</h1><p class="sr"><Link to="/play">All games</Link></p><Player key={address} name={game} address={address} spectate={spectate} leave={() => go("/play")} /></>;
}
