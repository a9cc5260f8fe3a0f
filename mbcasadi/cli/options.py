"""Arguments that several commands take."""

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[
    str, typer.Argument(help="MJCF or URDF file, or the name of a model of the package.")
]
SpecFile = Annotated[
    Path, typer.Option("--controller", "-c", help="TOML file of the controller and its motion.")
]
AllowCode = Annotated[
    bool, typer.Option("--allow-code", help="Run the Python code that a file of type own names.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]
Duration = Annotated[float | None, typer.Option(min=0, help="s; the file's by default.")]
Rigid = Annotated[bool | None, typer.Option(help="Rigid recipe for the plant's loops.")]
Perturb = Annotated[
    list[str] | None, typer.Option(help="Error of the plant, such as mass=0.1; repeatable.")
]
Pushes = Annotated[
    list[str] | None,
    typer.Option(
        "--push",
        help="Force on a body of the plant, BODY=FX,FY,FZ@START:STOP in N (world axes) and s, such "
        "as trunk=0,50,0@0.5:0.7; repeatable. They replace those of the file.",
    ),
]
Fast = Annotated[
    bool,
    typer.Option(help="For a first look: do not wait for the C as shipped; the report says so."),
]
Render = Annotated[bool, typer.Option(help="Render frames, where a renderer is present.")]
VideoFile = Annotated[Path | None, typer.Option(help="Write a video to this .mp4 or .gif file.")]
Viewer = Annotated[bool, typer.Option("--viewer", help="Show the run in MuJoCo's viewer.")]
ReportFile = Annotated[
    Path | None, typer.Option(help="Write the report to this .html or .json file.")
]
