import { render } from "preact";
import "./style/base.css";
import { App } from "./shell/app";

const root = document.getElementById("page");
if (root) render(<App />, root);
