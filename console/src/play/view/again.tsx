import { base } from "../../base";
import { Link } from "../../shell/link";

/** Links to a finished game: the viewer, and its file. */
export function Again({ game }: { game: string }) {
  return <span class="row tight"><Link to={`/games/played/${game}`}>Watch it again</Link>
    <a href={`${base}/v1/play/recordings/${game}`} download={`${game}.view`}>Save it</a></span>;
}
