"""What the steps of a plant leave of contact forces: the model's own, and those of the rows here.

See `mbcasadi.plant.contact_share`.

cd tests && python -m robots.whole_body.contact_steps [--models FOLDER] [own | go2 …]
"""

import argparse

from mbcasadi.plant.contact_share import contact_share, contact_step
from mbcasadi.plant.contacts import find_frame
from robots import models
from robots.whole_body.trials import HUMANOIDS, QUADRUPEDS, SPRUNG, described

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="robots.whole_body.contact_steps", description=__doc__)
    names = QUADRUPEDS | HUMANOIDS | SPRUNG
    parser.add_argument("robots", nargs="*", choices=["all", *names], default="all")
    models.add_argument(parser)
    print("| robot | own step, ms | share | step here, ms | share |\n|---|---|---|---|---|")
    chosen = parser.parse_args().robots
    for key in names if "all" in chosen else chosen:
        spec, q, sites = described(key)
        model = spec.compile()
        frames = [find_frame(model, site, "site") for site in sites]
        steps = float(model.opt.timestep), contact_step(model, q, frames)
        cells = (f"{1e3 * h:g} | {contact_share(model, q, frames, h):.2f}" for h in steps)
        print(f"| {names[key]} | {' | '.join(cells)} |", flush=True)
